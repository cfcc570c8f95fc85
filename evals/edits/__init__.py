"""Requests in a user's words on small repositories: does the agent make the change, and nothing else?"""
