"""Who has what: the leader's and the follower's decisions about one partition. Pure."""
