"""Who reads what: the elections on the consumers' side. Pure: requests in, records and answers out."""
