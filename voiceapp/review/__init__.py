"""What is made of a session once it is over: its title, its summary, and an evaluation."""
