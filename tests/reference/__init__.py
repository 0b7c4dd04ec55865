"""What the reference systems do, row by row of their description."""
