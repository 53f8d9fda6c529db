{{/* The file everlog.toml: `config`, and what the chart decides. Where a pod's own name is needed, a variable has it. */}}

{{/* everlog.topicsLogin: the part of the values that has the topics Job's login: its own if it has one. */}}
{{- define "everlog.topicsLogin" -}}
{{- with .Values.topics -}}
{{- if or .propertiesSecret.name .sasl.passwordSecret.name .certificateSecret.name -}} topics {{- else -}} kafka {{- end -}}
{{- end -}}
{{- end -}}

{{/* everlog.owned: the keys that the chart sets, as a dict of dicts in JSON. This and those below take
dict "root" $ "login" ("kafka", or what everlog.topicsLogin says). */}}
{{- define "everlog.owned" -}}
{{- $here := . -}}
{{- $login := get .root.Values .login -}}
{{- with .root -}}
{{- $owned := dict "http" dict "tls" dict "auth" dict "tokens" dict "cluster" dict "kafka" dict -}}
{{- if .Values.http.enabled }}{{ $_ := set $owned.http "address" (printf "%s:7234" .Values.listenAddress) }}{{ end -}}
{{- with .Values.tls.gateway -}}
{{- if .enabled }}
  {{- $_ := set $owned.tls "certificate_file" "/etc/everlog/gateway/tls.crt" }}
  {{- $_ := set $owned.tls "key_file" "/etc/everlog/gateway/tls.key" }}
  {{- if .clientCaSecret.name }}{{ $_ := set $owned.tls "client_ca_file" "/etc/everlog/gateway/clients-ca.crt" }}{{ end }}
{{- end -}}
{{- end -}}
{{- if .Values.auth.apiKeysSecret.name }}{{ $_ := set $owned.auth "api_keys_file" "/etc/everlog/auth/api-keys" }}{{ end -}}
{{- if .Values.auth.rulesSecret.name }}{{ $_ := set $owned.auth "rules_file" "/etc/everlog/auth/rules" }}{{ end -}}
{{- if .Values.auth.jwksCa.configMapName }}{{ $_ := set $owned.auth "jwks_ca_file" "/etc/everlog/auth/jwks-ca.crt" }}{{ end -}}
{{- if .Values.tokens.secret.name }}{{ $_ := set $owned.tokens "key_file" "/etc/everlog/tokens/keys" }}{{ end -}}
{{- if eq .Values.mode "kafka" -}}
  {{- if .Values.nodeSecret.name }}{{ $_ := set $owned.cluster "secret_file" "/etc/everlog/nodes/secret" }}{{ end -}}
  {{- if .Values.tls.nodes.enabled }}
    {{- $_ := set $owned.cluster "certificate_file" "/etc/everlog/nodes/tls.crt" }}
    {{- $_ := set $owned.cluster "key_file" "/etc/everlog/nodes/tls.key" }}
    {{- $_ := set $owned.cluster "ca_file" "/etc/everlog/nodes/ca.crt" }}
  {{- end -}}
  {{- $_ := set $owned.kafka "properties" (include "everlog.kafkaProperties" $here | fromJsonArray) }}
  {{- if $login.propertiesSecret.name }}{{ $_ := set $owned.kafka "properties_file" "/etc/everlog/kafka/properties" }}{{ end -}}
{{- end -}}
{{- toJson $owned -}}
{{- end -}}
{{- end -}}

{{/* The properties that stand in the file: those of `config.kafka`, and where the certificates are. A JSON list. */}}
{{- define "everlog.kafkaProperties" -}}
{{- $properties := .root.Values.config.kafka.properties -}}
{{- if .root.Values.kafka.caSecret.name }}{{ $properties = append $properties "ssl.ca.location=/etc/everlog/kafka/ca.crt" }}{{ end -}}
{{- if (get .root.Values .login).certificateSecret.name }}
  {{- $properties = append $properties "ssl.certificate.location=/etc/everlog/kafka/tls.crt" }}
  {{- $properties = append $properties "ssl.key.location=/etc/everlog/kafka/tls.key" }}
{{- end -}}
{{- toJson $properties -}}
{{- end -}}

{{/* JSON's scalars and lists are those of TOML; toToml would write integers as fractions, which are refused. */}}
{{- define "everlog.toml" -}}
{{- $config := mergeOverwrite (deepCopy .root.Values.config) (include "everlog.owned" . | fromJson) -}}
{{- if eq .root.Values.mode "embedded" }}{{ $config = omit $config "kafka" }}{{ end -}}
{{- $lines := list -}}
{{- range $section, $keys := $config -}}
  {{- if $keys }}{{ $lines = append $lines (printf "[%s]" $section) }}{{ end -}}
  {{- range $key, $value := $keys }}{{ $lines = append $lines (printf "%s = %s" $key (toJson $value)) }}{{ end -}}
{{- end -}}
{{- join "\n" $lines -}}
{{- end -}}

{{/* Sources of a projected volume: what reaches the brokers. */}}
{{- define "everlog.kafkaSecrets" -}}
{{- $login := get .root.Values .login -}}
{{- with $login.propertiesSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: kafka/properties}]}
{{- end }}{{ end }}
{{- with .root.Values.kafka.caSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: kafka/ca.crt}]}
{{- end }}{{ end }}
{{- with $login.certificateSecret }}{{ if .name }}
- secret:
    name: {{ .name }}
    items: [{key: {{ .certificateKey }}, path: kafka/tls.crt}, {key: {{ .keyKey }}, path: kafka/tls.key}]
{{- end }}{{ end }}
{{- end -}}

{{/* The same of nodes, and of programs that speak with them. These two take $. */}}
{{- define "everlog.nodeSecrets" -}}
{{- with .Values.nodeSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: nodes/secret}]}
{{- end }}{{ end }}
{{- if .Values.tls.nodes.enabled }}
- secret:
    name: {{ include "everlog.nodesSecret" . }}
    items: [{key: tls.crt, path: nodes/tls.crt}, {key: tls.key, path: nodes/tls.key}, {key: ca.crt, path: nodes/ca.crt}]
{{- end }}
{{- end -}}

{{/* The same of the gateway. */}}
{{- define "everlog.gatewaySecrets" -}}
{{- if .Values.tls.gateway.enabled }}
- secret:
    name: {{ include "everlog.gatewaySecret" . }}
    items: [{key: tls.crt, path: gateway/tls.crt}, {key: tls.key, path: gateway/tls.key}]
{{- with .Values.tls.gateway.clientCaSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: gateway/clients-ca.crt}]}
{{- end }}{{ end }}
{{- end }}
{{- with .Values.auth.apiKeysSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: auth/api-keys}]}
{{- end }}{{ end }}
{{- with .Values.auth.rulesSecret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: auth/rules}]}
{{- end }}{{ end }}
{{- with .Values.auth.jwksCa }}{{ if .configMapName }}
- configMap: {name: {{ .configMapName }}, items: [{key: {{ .key }}, path: auth/jwks-ca.crt}]}
{{- end }}{{ end }}
{{- with .Values.tokens.secret }}{{ if .name }}
- secret: {name: {{ .name }}, items: [{key: {{ .key }}, path: tokens/keys}]}
{{- end }}{{ end }}
{{- end -}}

{{/* everlog.saslEnv: a variable replaces the whole list of the file, so it repeats it. Kubernetes puts the password in its
place; it stands in no object of the chart. */}}
{{- define "everlog.saslEnv" -}}
{{- $sasl := (get .root.Values .login).sasl -}}
{{- if $sasl.passwordSecret.name }}
{{- $properties := list }}
{{- range include "everlog.kafkaProperties" . | fromJsonArray }}{{ $properties = append $properties (replace "$" "$$" .) }}{{ end }}
{{- $properties = concat $properties (list (printf "sasl.username=%s" $sasl.username) "sasl.password=$(KAFKA_PASSWORD)") }}
- name: KAFKA_PASSWORD
  valueFrom: {secretKeyRef: {name: {{ $sasl.passwordSecret.name }}, key: {{ $sasl.passwordSecret.key }}}}
- name: EVERLOG_KAFKA__PROPERTIES
  value: {{ join ";" $properties | quote }}
{{- end }}
{{- end -}}
