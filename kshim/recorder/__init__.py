"""The flight recorder: keeps each group's last rebalances, and says what moved and why."""
