"""Live sessions of this process, and between processes.

sessions: started, found and drained in one place · handover: asking another process to let one go.
"""
