"""From a browser to a Realtime service and back.

browser/: the page's socket → process/: the live sessions of this process, and between processes →
session/: one live session → upstream/: the service's address, connection, redial and renewal.
"""
