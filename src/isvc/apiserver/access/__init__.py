"""Who asks, and whether they may: tokens, certificates, impersonation, RBAC, and the reviews that ask about them."""
