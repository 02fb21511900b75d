"""Who may do what: Kafka's access rules, and how they decide."""
