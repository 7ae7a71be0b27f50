from isvc.llmserver.program import main

raise SystemExit(main())
