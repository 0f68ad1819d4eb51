"""Going out to other services.

addresses: what a URL names · entra: signing in with Microsoft Entra ID · guard: which addresses tools may
reach, and how a checked connection is made · unpacking: answers that come packed.
"""
