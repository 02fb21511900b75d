"""Settings that change while the broker runs, and the APIs that show and change them."""
