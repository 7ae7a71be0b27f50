{{- /* An object that ships, which stays when the managers go. Takes object, and the metadata that it is to have beside its own. */ -}}
{{- define "isvc.shipped" }}
{{- $labels := dict "app.kubernetes.io/part-of" "isvc" }}
{{- $annotations := dict "helm.sh/resource-policy" "keep" }}
---
{{ mergeOverwrite .object (dict "metadata" .metadata) (dict "metadata" (dict "labels" $labels "annotations" $annotations)) | toYaml }}
{{ end }}
