"""What a session leaves behind: its text, the question, who may be asked, the answer."""
