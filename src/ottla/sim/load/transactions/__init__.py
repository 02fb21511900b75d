"""Programs with transactional ids: they write, they copy, and others read what they committed."""
