"""The coordinators of groups and transactions: two pure cores, and a runtime with time and journal."""
