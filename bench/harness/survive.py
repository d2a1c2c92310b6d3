def run(n,o): pass
