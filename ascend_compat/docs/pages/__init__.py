"""One module a kind of page; each makes pages as plain data from the database."""
