"""A cluster with closed doors: certificates, users and the files that clients need."""
