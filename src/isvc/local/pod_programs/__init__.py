"""Programs that run in pods in place of images whose work another part of `isvc up` does, or cannot be done here."""
