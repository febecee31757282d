"""Complete command lines in bash, zsh, fish and PowerShell."""
