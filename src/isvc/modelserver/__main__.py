from isvc.modelserver.program import main

raise SystemExit(main())
