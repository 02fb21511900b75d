"""Administration: operations that find the broker that must do them, and try again when it has moved.

Each is a function of the engine: ``client.run(create_topics, [...])`` on either edge. They give back the rows
of the protocol, error codes and all; only what concerns the whole call is raised.
"""
