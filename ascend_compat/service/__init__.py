"""Checks over HTTP; needs the extra ``serve``."""
