"""Certificates: issued, checked, and shown to clients for as long as their files say so."""
