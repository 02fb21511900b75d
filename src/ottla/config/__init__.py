"""Every setting, by Kafka's name: type, default, meaning. Read once, all problems named at once."""
