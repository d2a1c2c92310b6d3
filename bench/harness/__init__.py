"""Side-by-side measurements of the gate and its peers: CPU time per unit of work."""
