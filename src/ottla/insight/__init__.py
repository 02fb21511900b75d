"""What a cluster's facts mean: how it stands, why, and what would happen if: pure."""
