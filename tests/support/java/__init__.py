"""Java programs that judge, and what makes a JVM quick to start."""
