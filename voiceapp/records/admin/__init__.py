"""The Django admin of the records.

assistants, http_tools, tokens: edited here · sessions (usage): read only · notes: read and deleted ·
fields: form fields that answer whatever is typed with a sentence.
"""

from django.contrib import admin

from voiceapp.records.admin import assistants, http_tools, notes, sessions, tokens  # noqa: F401 - registered

admin.site.site_header = "voiceapp"
admin.site.site_title = "voiceapp"
# A few tables need no second menu, and the list of sessions needs its room.
admin.site.enable_nav_sidebar = False
admin.site.index_title = "Assistants, sessions, tokens and users"
