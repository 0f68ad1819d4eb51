"""Assistants that may delete a note may bring it back as well."""

from __future__ import annotations

from typing import Any

from django.db import migrations

_DELETES, _BRINGS_BACK = "delete_note", "undo_delete_note"


def add_tool(apps: Any, schema_editor: Any) -> None:
    for assistant in (
        apps.get_model("records", "Assistant").objects.using(schema_editor.connection.alias).all()
    ):
        tools = assistant.tools
        if isinstance(tools, list) and _DELETES in tools and _BRINGS_BACK not in tools:
            place = tools.index(_DELETES) + 1
            assistant.tools = [*tools[:place], _BRINGS_BACK, *tools[place:]]
            assistant.save(update_fields=["tools"])


def take_tool_away(apps: Any, schema_editor: Any) -> None:
    for assistant in (
        apps.get_model("records", "Assistant").objects.using(schema_editor.connection.alias).all()
    ):
        if isinstance(assistant.tools, list) and _BRINGS_BACK in assistant.tools:
            assistant.tools = [name for name in assistant.tools if name != _BRINGS_BACK]
            assistant.save(update_fields=["tools"])


class Migration(migrations.Migration):
    dependencies = [("records", "0011_deleted_notes")]

    operations = [migrations.RunPython(add_tool, take_tool_away)]
