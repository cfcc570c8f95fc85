"""Who answers: the seam to a chat model, and the two things that stand behind it."""
