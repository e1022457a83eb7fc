"""The part of a desktop that shows tray items: others register there, and their menus are read and
chosen from as a person would.

The protocols are StatusNotifierItem and com.canonical.dbusmenu.
"""

import threading
from dataclasses import dataclass, field

from jeepney import (
    DBusAddress,
    HeaderFields,
    MessageType,
    new_error,
    new_method_call,
    new_method_return,
)
from jeepney.bus_messages import message_bus
from jeepney.io.threading import DBusRouter, ReceiveStopped, open_dbus_connection

from waiting import until

WATCHER = "org.kde.StatusNotifierWatcher"
ITEM = "org.kde.StatusNotifierItem"
MENU = "com.canonical.dbusmenu"
PROPERTIES = "org.freedesktop.DBus.Properties"


@dataclass
class Entry:
    """One entry of a menu, with those below it."""

    id: int
    properties: dict
    entries: list["Entry"] = field(default_factory=list)

    @property
    def label(self) -> str:
        # An underscore marks the key of an entry; two are one that is shown.
        return (
            self.properties.get("label", "").replace("__", "\0").replace("_", "").replace("\0", "_")
        )

    @property
    def is_separator(self) -> bool:
        return self.properties.get("type") == "separator"

    @property
    def is_enabled(self) -> bool:
        return self.properties.get("enabled", True)

    @property
    def is_checked(self) -> bool:
        return self.properties.get("toggle-state", 0) == 1


class MenuBar:
    """A watcher of tray items on a session bus."""

    def __init__(self, bus: str):
        # By the unique names of their owners on the bus.
        self._items: dict[str, str] = {}
        self._connection = open_dbus_connection(bus)
        self._router = DBusRouter(open_dbus_connection(bus))
        self._connection.send(message_bus.RequestName(WATCHER))
        threading.Thread(target=self._serve, daemon=True).start()
        until(self._is_known, "the watcher's name on the bus")

    def close(self) -> None:
        self._router.close()
        self._connection.close()

    def _is_known(self) -> bool:
        reply = self._router.send_and_get_reply(message_bus.NameHasOwner(WATCHER))
        return reply.body == (True,)

    def item(self, pid: int) -> "Item":
        """The item that a process has registered."""
        found = until(lambda: self._item_of(pid), f"a tray item of process {pid}")
        return Item(self._router, *found)

    def _item_of(self, pid: int) -> tuple[str, str] | None:
        for owner, path in list(self._items.items()):
            asked = message_bus.GetConnectionUnixProcessID(owner)
            reply = self._router.send_and_get_reply(asked)
            if reply.header.message_type == MessageType.method_return and reply.body == (pid,):
                return owner, path
        return None

    def _serve(self) -> None:
        while True:
            try:
                message = self._connection.receive()
            except (OSError, ReceiveStopped):
                # Closed, here or by the bus.
                return
            if message.header.message_type == MessageType.method_call:
                self._connection.send(self._answer(message))

    def _answer(self, message):
        fields = message.header.fields
        match fields.get(HeaderFields.member):
            case "RegisterStatusNotifierItem":
                owner, path = fields[HeaderFields.sender], message.body[0]
                self._items[owner] = path if path.startswith("/") else "/StatusNotifierItem"
                return new_method_return(message)
            case "RegisterStatusNotifierHost":
                return new_method_return(message)
            case "Get":
                values = {
                    "IsStatusNotifierHostRegistered": ("b", True),
                    "ProtocolVersion": ("i", 0),
                    "RegisteredStatusNotifierItems": ("as", []),
                }
                return new_method_return(message, "v", (values[message.body[1]],))
            case "GetAll":
                values = {"IsStatusNotifierHostRegistered": ("b", True)}
                return new_method_return(message, "a{sv}", (values,))
            case other:
                return new_error(message, "org.freedesktop.DBus.Error.UnknownMethod", "s", (other,))


class Item:
    """A tray item of another process."""

    def __init__(self, router: DBusRouter, owner: str, path: str):
        self._router = router
        self._owner = owner
        self._path = path

    def read(self, name: str) -> object:
        address = DBusAddress(self._path, self._owner, PROPERTIES)
        (variant,) = self._call(address, "Get", "ss", (ITEM, name))
        return variant[1]

    def entries(self) -> list[Entry]:
        """The menu, top to bottom."""
        # As a desktop does before it shows a menu.
        self._call(self._menu, "AboutToShow", "i", (0,))
        _, layout = self._call(self._menu, "GetLayout", "iias", (0, -1, []))
        return entry(layout).entries

    def entry(self, start: str) -> Entry:
        """The entry whose label starts so."""
        entries = self.entries()
        found = [entry for entry in entries if entry.label.startswith(start)]
        assert len(found) == 1, f"{start!r} in {[entry.label for entry in entries]}"
        return found[0]

    def choose(self, entry: Entry) -> None:
        assert entry.is_enabled, f"{entry.label!r} cannot be chosen"
        self._call(self._menu, "Event", "isvu", (entry.id, "clicked", ("i", 0), 0))

    @property
    def _menu(self) -> DBusAddress:
        return DBusAddress(self.read("Menu"), self._owner, MENU)

    def _call(self, address: DBusAddress, method: str, signature: str, body: tuple) -> tuple:
        call = new_method_call(address, method, signature, body)
        reply = self._router.send_and_get_reply(call, timeout=10)
        assert reply.header.message_type == MessageType.method_return, reply.body
        return reply.body


def entry(layout: tuple) -> Entry:
    number, properties, below = layout
    values = {name: variant[1] for name, variant in properties.items()}
    return Entry(number, values, [entry(variant[1]) for variant in below])
