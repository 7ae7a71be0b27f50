{{- /* The pod of a manager. Takes root, values, command, plane, account, secret, metrics, namespaces,
both: whether it runs llmisvc-manager, too, localmodel: whether it runs localmodel-manager, too, and secure: whether metrics are served over TLS by a manager that would not otherwise. */ -}}
{{- define "isvc.pod" }}
    spec:
      serviceAccountName: {{ .account }}
      terminationGracePeriodSeconds: 30
      {{- if .root.Values.priorityClass.create }}
      priorityClassName: {{ .root.Release.Name }}-controllers
      {{- else if .root.Values.priorityClassName }}
      priorityClassName: {{ .root.Values.priorityClassName }}
      {{- end }}
      {{- if .root.Values.imagePullSecrets }}
      imagePullSecrets: {{ toJson .root.Values.imagePullSecrets }}
      {{- end }}
      securityContext: {{ toJson .root.Values.podSecurityContext }}
      topologySpreadConstraints:
        {{- range $key := list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
        - topologyKey: {{ $key }}
          maxSkew: 1
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {control-plane: {{ $.plane }}}
        {{- end }}
      {{- if .values.nodeSelector }}
      nodeSelector: {{ toJson .values.nodeSelector }}
      {{- end }}
      {{- if .values.tolerations }}
      tolerations: {{ toJson .values.tolerations }}
      {{- end }}
      {{- if .values.affinity }}
      affinity: {{ toJson .values.affinity }}
      {{- end }}
      containers:
        - name: manager
          image: {{ print .root.Values.image.repository (default (print ":" (default .root.Chart.AppVersion .root.Values.image.tag)) (regexReplaceAll "^(.+)$" .root.Values.image.digest "@${1}")) | quote }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          command: [{{ .command }}]
          args:
            - --leader-elect
            - --shutdown-delay-duration=10s
            - --zap-log-level={{ .values.logLevel }}
            {{- if .namespaces }}
            - --namespaces={{ join "," .namespaces }}
            {{- end }}
            {{- if .both }}
            - --with-llmisvc
            {{- if .secure }}
            - --llmisvc-metrics-addr=:8444
            {{- end }}
            {{- if ne .root.Values.certificates.source "self" }}
            - --llmisvc-webhook-cert-dir=/tmp/k8s-webhook-server/llmisvc-serving-certs
            {{- end }}
            {{- end }}
            {{- if .localmodel }}
            - --with-localmodel
            - --localmodel-metrics-addr=:8445
            {{- if ne .root.Values.certificates.source "self" }}
            - --localmodel-webhook-cert-dir=/tmp/k8s-webhook-server/localmodel-serving-certs
            {{- end }}
            {{- end }}
            {{- if .secure }}
            - --metrics-secure
            - --metrics-addr=:8443
            {{- end }}
            {{- if .root.Values.webhooks.clients.configMap }}
            - --webhook-client-ca-file=/etc/webhook-clients/{{ .root.Values.webhooks.clients.key }}
            {{- if .root.Values.webhooks.clients.names }}
            - --webhook-client-names={{ join "," .root.Values.webhooks.clients.names }}
            {{- end }}
            {{- end }}
            {{- range .values.extraArgs }}
            - {{ quote . }}
            {{- end }}
          env:
            - name: POD_NAMESPACE
              valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
            {{- range .values.extraEnv }}
            - {{ toJson . }}
            {{- end }}
          ports:
            - {name: webhook-server, containerPort: 9443}
            - {name: metrics, containerPort: {{ .metrics }}}
            - {name: probes, containerPort: 8081}
            {{- if .both }}
            - {name: llmisvc-webhook, containerPort: 9444}
            - {name: llmisvc-metrics, containerPort: {{ if .secure }}8444{{ else }}8443{{ end }}}
            {{- end }}
            {{- if .localmodel }}
            - {name: caches-webhook, containerPort: 9445}
            - {name: caches-metrics, containerPort: 8445}
            {{- end }}
          startupProbe:
            httpGet: {path: /healthz, port: probes}
            periodSeconds: 2
            failureThreshold: 30
          livenessProbe:
            httpGet: {path: /healthz, port: probes}
            failureThreshold: 5
            timeoutSeconds: 5
          readinessProbe:
            httpGet: {path: /readyz, port: probes}
            periodSeconds: 5
            timeoutSeconds: 5
          resources: {{ toJson .values.resources }}
          securityContext: {{ toJson .root.Values.securityContext }}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if .root.Values.webhooks.clients.configMap }}
            - {name: webhook-clients, mountPath: /etc/webhook-clients, readOnly: true}
            {{- end }}
            {{- if ne .root.Values.certificates.source "self" }}
            - {name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs, readOnly: true}
            {{- if .both }}
            - {name: llmisvc-cert, mountPath: /tmp/k8s-webhook-server/llmisvc-serving-certs, readOnly: true}
            {{- end }}
            {{- if .localmodel }}
            - {name: localmodel-cert, mountPath: /tmp/k8s-webhook-server/localmodel-serving-certs, readOnly: true}
            {{- end }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- if .root.Values.webhooks.clients.configMap }}
        - name: webhook-clients
          configMap: {name: {{ .root.Values.webhooks.clients.configMap }}}
        {{- end }}
        {{- if ne .root.Values.certificates.source "self" }}
        - name: cert
          secret: {secretName: {{ .secret }}}
        {{- if .both }}
        - name: llmisvc-cert
          secret: {secretName: llmisvc-webhook-server-cert}
        {{- end }}
        {{- if .localmodel }}
        - name: localmodel-cert
          secret: {secretName: localmodel-webhook-server-cert}
        {{- end }}
        {{- end }}
{{- end }}
{{- /* Labels of every object that the chart makes for managers, beside those by which it is found. */ -}}
{{- define "isvc.labels" }}
    app.kubernetes.io/instance: {{ .Release.Name }}
    app.kubernetes.io/part-of: isvc
    app.kubernetes.io/version: {{ quote .Chart.AppVersion }}
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
