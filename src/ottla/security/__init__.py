"""Who somebody is: users, their secrets, and the exchanges that prove them. Pure."""
