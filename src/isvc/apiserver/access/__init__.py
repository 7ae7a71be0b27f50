"""Authentication, impersonation and authorization (RBAC), and the reviews by which clients ask about them."""
