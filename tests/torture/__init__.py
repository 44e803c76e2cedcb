"""The pure parts of `kshim torture`: what is drawn, gathered, judged and told."""
