"""The ElGamal unions: the paper's protocol, as printed and as corrected."""
