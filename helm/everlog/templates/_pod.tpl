{{/* Parts of pods. */}}

{{/* everlog.scheduling: dict "root" $ "of" (the values, or jobScheduling where that has something). */}}
{{- define "everlog.scheduling" -}}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "schedulerName" }}
{{- with get $.of $field }}
{{ $field }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Of the Job, and of test pods. */}}
{{- define "everlog.jobPod" -}}
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
restartPolicy: Never
securityContext:
  {{- toYaml .Values.podSecurityContext | nindent 2 }}
{{- include "everlog.scheduling" (dict "root" . "of" (default .Values .Values.jobScheduling)) }}
{{- end -}}

{{/* Scheduling of a pod that mounts the claim of the only node. */}}
{{- define "everlog.besideNode" -}}
{{- $own := default (pick .Values "nodeSelector" "tolerations" "affinity" "priorityClassName" "runtimeClassName" "schedulerName") .Values.jobScheduling -}}
{{- $labels := include "everlog.component" (dict "root" . "component" "node") | fromYaml -}}
{{- $term := dict "topologyKey" "kubernetes.io/hostname" "labelSelector" (dict "matchLabels" $labels) -}}
{{- $beside := dict "affinity" (dict "podAffinity" (dict "requiredDuringSchedulingIgnoredDuringExecution" (list $term))) -}}
{{- merge $beside (deepCopy $own) | toYaml -}}
{{- end -}}

{{/* everlog.programContainer: dict "root" $ "login" and "name": the program, without what it does. */}}
{{- define "everlog.programContainer" -}}
name: {{ .name }}
image: {{ include "everlog.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .root.Values.securityContext | nindent 2 }}
{{- with .root.Values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* everlog.settingsVolume: dict "root" $ "login" "configMap" and "sources": all settings as one volume, so that they change
at once. */}}
{{- define "everlog.settingsVolume" -}}
- name: settings
  projected:
    defaultMode: 0440
    sources:
      - configMap: {name: {{ .configMap }}}
      {{- with include "everlog.kafkaSecrets" . | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- with .sources }}
      {{- . | nindent 6 }}
      {{- end }}
- name: tmp
  emptyDir: {sizeLimit: 64Mi}
{{- end -}}

{{- define "everlog.settingsMounts" -}}
- {name: settings, mountPath: /etc/everlog, readOnly: true}
- {name: tmp, mountPath: /tmp}
{{- end -}}

{{/* Variables of a node: its own name, and what variables of an image would have a say in otherwise. */}}
{{- define "everlog.nodeEnv" -}}
- name: EVERLOG_SERVER__NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
- name: EVERLOG_SERVER__ADDRESS
  value: {{ printf "%s:7233" .Values.listenAddress | quote }}
- name: EVERLOG_SERVER__METRICS_ADDRESS
  value: {{ printf "%s:9233" .Values.listenAddress | quote }}
# Beside what a file system may have at its root.
- name: EVERLOG_SERVER__DATA_DIR
  value: /var/lib/everlog/data
{{- if eq .Values.mode "kafka" }}
- name: EVERLOG_CLUSTER__ADDRESS
  value: {{ printf "%s:7235" .Values.listenAddress | quote }}
- name: EVERLOG_CLUSTER__ADVERTISED
  value: {{ printf "$(EVERLOG_SERVER__NAME).%s.%s.svc.%s:7235" (include "everlog.headless" .) .Release.Namespace .Values.clusterDomain }}
{{- include "everlog.saslEnv" (dict "root" . "login" "kafka") }}
{{- end }}
{{- with .Values.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "everlog.spreading" -}}
{{- $constraints := list -}}
{{- if gt (int .Values.replicas) 1 -}}
{{- $selector := dict "matchLabels" (include "everlog.component" (dict "root" . "component" "node") | fromYaml) -}}
{{- with .Values.spreading.zones -}}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" "topology.kubernetes.io/zone" "whenUnsatisfiable" . "labelSelector" $selector) -}}
{{- end -}}
{{- with .Values.spreading.hosts -}}
{{- $constraints = append $constraints (dict "maxSkew" 1 "topologyKey" "kubernetes.io/hostname" "whenUnsatisfiable" . "labelSelector" $selector) -}}
{{- end -}}
{{- end -}}
{{- with concat $constraints .Values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
