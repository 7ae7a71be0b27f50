"""How Linux keeps a process to the files, ports and system calls that a policy names."""
