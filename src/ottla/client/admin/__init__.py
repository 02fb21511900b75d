"""Administration: operations that find the broker to ask, and try again when the role has moved.

Each is a function of the engine: ``client.run(create_topics, [...])`` on either edge. They return the rows
of the response with their error codes; only an error of the whole call is raised.
"""
