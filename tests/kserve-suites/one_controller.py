"""isvc-manager with one controller, as KServe's suites have it: what others write would come between their own writes.

python one_controller.py trainedmodel [FLAGS OF THE MANAGER]
"""

from __future__ import annotations

import sys
from dataclasses import replace
from importlib import import_module

from isvc.programs import isvc_manager

if __name__ == "__main__":
    name = sys.argv.pop(1)
    make = import_module(f"isvc.controllers.{name}.watches").controller
    vars(isvc_manager)["PROGRAM"] = replace(isvc_manager.PROGRAM, controllers=(make,))
    isvc_manager.main()
