"""Programs of frameworks: each uses the public API of one, and is held to what that promises."""
