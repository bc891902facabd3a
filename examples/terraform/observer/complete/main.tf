# A hub, and the role in one account. Use the module `account` once for each account, or put it into a StackSet of your
# landing zone: what counts is the role's name, the external id and the policy.

terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

provider "aws" {
  region = "eu-west-1"
}

provider "aws" {
  alias  = "shop"
  region = "eu-west-1"

  assume_role {
    role_arn = "arn:aws:iam::111111111111:role/OrganizationAccountAccessRole"
  }
}

variable "external_id" {
  type = string
}

variable "image" {
  type = string
}

variable "seal_key_secret_arn" {
  type = string
}

variable "subnet_ids" {
  type = list(string)
}

variable "security_group_ids" {
  type = list(string)
}

module "hub" {
  source = "../hub"

  bucket_name         = "example-driftline-store"
  image               = var.image
  external_id         = var.external_id
  seal_key_secret_arn = var.seal_key_secret_arn
  subnet_ids          = var.subnet_ids
  security_group_ids  = var.security_group_ids
  shards              = 4
}

module "shop" {
  source    = "../account"
  providers = { aws = aws.shop }

  hub_role_arn = module.hub.role_arn
  external_id  = var.external_id
}

output "store" {
  value = module.hub.store
}
