"""Plans into writes: what children should be, how live ones are compared with it, and the requests that follow."""
