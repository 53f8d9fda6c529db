{{/* Names and labels. They are the same in every version of the chart: those of a StatefulSet cannot be changed. */}}

{{- define "everlog.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* At most 40 characters, for names get up to 23 more: those of pods are labels. */}}
{{- define "everlog.fullname" -}}
{{- $name := include "everlog.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- default $full .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "everlog.headless" -}}{{ include "everlog.fullname" . }}-nodes{{- end -}}

{{- define "everlog.selectorLabels" -}}
app.kubernetes.io/name: {{ include "everlog.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* everlog.component: dict "root" $ "component" NAME */}}
{{- define "everlog.component" -}}
{{ include "everlog.selectorLabels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* everlog.metadata: dict "root" $ "name" NAME, and "component", "labels", "annotations" where there are some.
Everything under `metadata` of an object. */}}
{{- define "everlog.metadata" -}}
{{- $root := .root -}}
{{- $own := dict
  "helm.sh/chart" (printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_")
  "app.kubernetes.io/version" (default $root.Chart.AppVersion $root.Values.image.tag | trunc 63 | trimSuffix "-" | trimSuffix ".")
  "app.kubernetes.io/managed-by" $root.Release.Service
  "app.kubernetes.io/name" (include "everlog.name" $root)
  "app.kubernetes.io/instance" $root.Release.Name
  "app.kubernetes.io/component" (default "node" .component) -}}
name: {{ .name }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- merge $own (default dict .labels) $root.Values.commonLabels | toYaml | nindent 2 }}
{{- with merge dict (default dict .annotations) $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "everlog.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "everlog.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "everlog.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}{{ .repository }}@{{ .digest }}{{- else -}}{{ .repository }}:{{ default $.Chart.AppVersion .tag }}{{- end -}}
{{- end -}}
{{- end -}}

{{- define "everlog.gatewaySecret" -}}
{{- default (printf "%s-gateway-tls" (include "everlog.fullname" .)) .Values.tls.gateway.secretName -}}
{{- end -}}

{{- define "everlog.nodesSecret" -}}
{{- default (printf "%s-nodes-tls" (include "everlog.fullname" .)) .Values.tls.nodes.secretName -}}
{{- end -}}
