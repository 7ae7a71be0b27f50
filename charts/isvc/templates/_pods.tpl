{{- /* The pod of a manager. Takes root, values, command, plane, account, secret, metrics, namespaces, and both: whether it runs both managers. */ -}}
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
      securityContext:
        runAsNonRoot: true
        runAsUser: 1000
        runAsGroup: 1000
        fsGroup: 1000
        seccompProfile: {type: RuntimeDefault}
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
          image: {{ printf "%s:%s" .root.Values.image.repository (default .root.Chart.AppVersion .root.Values.image.tag) | quote }}
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
            {{- if ne .root.Values.certificates.source "self" }}
            - --llmisvc-webhook-cert-dir=/tmp/k8s-webhook-server/llmisvc-serving-certs
            {{- end }}
            {{- end }}
            {{- range .values.extraArgs }}
            - {{ quote . }}
            {{- end }}
          env:
            - name: POD_NAMESPACE
              valueFrom: {fieldRef: {fieldPath: metadata.namespace}}
          ports:
            - {name: webhook-server, containerPort: 9443}
            - {name: metrics, containerPort: {{ .metrics }}}
            - {name: probes, containerPort: 8081}
            {{- if .both }}
            - {name: llmisvc-webhook, containerPort: 9444}
            - {name: llmisvc-metrics, containerPort: 8443}
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
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            runAsNonRoot: true
            capabilities: {drop: [ALL]}
          volumeMounts:
            - {name: tmp, mountPath: /tmp}
            {{- if ne .root.Values.certificates.source "self" }}
            - {name: cert, mountPath: /tmp/k8s-webhook-server/serving-certs, readOnly: true}
            {{- if .both }}
            - {name: llmisvc-cert, mountPath: /tmp/k8s-webhook-server/llmisvc-serving-certs, readOnly: true}
            {{- end }}
            {{- end }}
      volumes:
        - name: tmp
          emptyDir: {}
        {{- if ne .root.Values.certificates.source "self" }}
        - name: cert
          secret: {secretName: {{ .secret }}}
        {{- if .both }}
        - name: llmisvc-cert
          secret: {secretName: llmisvc-webhook-server-cert}
        {{- end }}
        {{- end }}
{{- end }}
