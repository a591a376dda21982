"""What all runners share; standard library only, so that it works in any framework's environment."""
