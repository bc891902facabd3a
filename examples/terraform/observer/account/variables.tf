variable "hub_role_arn" {
  description = "The role that the observer runs as (output `role_arn` of the hub)."
  type        = string
}

variable "external_id" {
  description = "A word that whoever takes on the role has to say. It is not a secret; it keeps others from using the hub against you."
  type        = string

  validation {
    condition     = can(regex("^[\\w+=,.@:/-]{2,1224}$", var.external_id))
    error_message = "Two to 1,224 letters, digits and any of + = , . @ : / -"
  }
}

variable "role_name" {
  description = "The same in every account."
  type        = string
  default     = "DriftlineObserver"
}

variable "tags" {
  description = "Tags of everything that is made."
  type        = map(string)
  default     = {}
}
