{{- define "hook" -}}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .release }}-{{ .hook }}
  annotations:
    helm.sh/hook: {{ .hook }}
    helm.sh/hook-delete-policy: before-hook-creation
spec:
  backoffLimit: 0
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: main
          image: python:3.11
          command: [python, -c]
          args: [{{ .code | quote }}]
          volumeMounts: [{name: data, mountPath: /data}]
      volumes: [{name: data, persistentVolumeClaim: {claimName: {{ .release }}-data}}]
{{- end }}
