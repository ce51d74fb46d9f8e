"""Make names from code and content: equal input gives equal names, other input other names."""
