"""Write files and stores completely or not at all, and never over a user's data."""
