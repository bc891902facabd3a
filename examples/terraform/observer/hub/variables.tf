variable "name" {
  description = "What everything is called."
  type        = string
  default     = "driftline"
}

variable "bucket_name" {
  description = "The bucket of the store; names of buckets are everybody's."
  type        = string
}

variable "image" {
  description = "The image of the program, built from deploy/Dockerfile and pushed to a registry of yours."
  type        = string
}

variable "external_id" {
  description = "What the role in each account asks for."
  type        = string
}

variable "seal_key_secret_arn" {
  description = "A secret in Secrets Manager with 64 hex digits (`openssl rand -hex 32`). Make it by hand, so that it is in no state file."
  type        = string
}

variable "subnet_ids" {
  description = "Where the task runs. It needs a way to AWS's endpoints."
  type        = list(string)
}

variable "security_group_ids" {
  description = "Of the task; it needs to be let out to port 443, and nobody in."
  type        = list(string)
}

variable "role_name" {
  description = "The role in each account."
  type        = string
  default     = "DriftlineObserver"
}

variable "schedule" {
  description = "When to look, as EventBridge Scheduler writes it."
  type        = string
  default     = "rate(1 hour)"
}

variable "gc_schedule" {
  description = "When to run `driftline gc`, as EventBridge Scheduler writes it."
  type        = string
  default     = "cron(41 3 * * ? *)"
}

variable "shards" {
  description = "How many tasks share the accounts."
  type        = number
  default     = 1

  validation {
    condition     = var.shards >= 1 && var.shards <= 1000 && floor(var.shards) == var.shards
    error_message = "A whole number from 1 to 1000."
  }
}

variable "cpu" {
  description = "Of each task, in thousandths of a core and a bit (Fargate's units)."
  type        = number
  default     = 512
}

variable "memory" {
  description = "Of each task, in MiB."
  type        = number
  default     = 1024
}

variable "observe_own_account" {
  description = "Whether the account of the hub is looked at, too. If not, exclude it in driftline.toml."
  type        = bool
  default     = true
}

variable "kms_key_arn" {
  description = "A key of yours for the bucket; S3's own if there is none."
  type        = string
  default     = null
}

variable "keep_deleted_days" {
  description = "How long files that `driftline gc` deleted can be had back."
  type        = number
  default     = 30
}

variable "reader_arns" {
  description = "Roles and users of other accounts that may read the store."
  type        = list(string)
  default     = []
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
