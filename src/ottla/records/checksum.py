"""CRC-32C, the checksum of a batch.

The package ``crc32c`` reads its own version out of its metadata when it is imported, which takes as long as a
tenth of a broker: only the compiled part is loaded, where it is found.
"""

from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crc32c import crc32c
else:

    def _compiled() -> Any:
        package = PathFinder.find_spec("crc32c")
        places = None if package is None else package.submodule_search_locations
        found = PathFinder.find_spec("crc32c._crc32c", places) if places else None
        if found is None or found.loader is None:
            import crc32c

            return crc32c
        module = module_from_spec(found)
        found.loader.exec_module(module)
        return module

    crc32c = _compiled().crc32c

__all__ = ["crc32c"]
