# The observer as a task on Fargate, started once for each share of the accounts.

resource "aws_cloudwatch_log_group" "observer" {
  name              = "/driftline/${var.name}"
  retention_in_days = 30
  tags              = var.tags
}

resource "aws_ecs_cluster" "observer" {
  name = var.name
  tags = var.tags
}

resource "aws_ecs_task_definition" "observer" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory
  task_role_arn            = aws_iam_role.hub.arn
  execution_role_arn       = aws_iam_role.start.arn

  container_definitions = jsonencode([{
    name                   = "observer"
    image                  = var.image
    essential              = true
    readonlyRootFilesystem = true
    user                   = "65532:65532"

    environment = [
      { name = "AWS_REGION", value = data.aws_region.current.name },
      { name = "DRIFTLINE_STORE", value = "s3://${aws_s3_bucket.store.bucket}/${local.prefix}" },
      { name = "DRIFTLINE_CONFIG_TEXT", value = file("${path.module}/driftline.toml") },
      { name = "DRIFTLINE_ROLE_NAME", value = var.role_name },
      { name = "DRIFTLINE_EXTERNAL_ID", value = var.external_id },
      # Nothing can be written here, so nothing is kept: files of the bucket are asked for when they are needed.
      { name = "DRIFTLINE_CACHE_DIR", value = "" },
    ]

    secrets = [{ name = "DRIFTLINE_SEAL_KEY", valueFrom = var.seal_key_secret_arn }]

    logConfiguration = {
      logDriver = "awslogs"
      options = {
        awslogs-group         = aws_cloudwatch_log_group.observer.name
        awslogs-region        = data.aws_region.current.name
        awslogs-stream-prefix = "observe"
      }
    }
  }])

  tags = var.tags
}

# Nothing keeps a run from beginning while the one before is still at it. That harms nothing (what was seen later is kept),
# but asks AWS twice: choose a schedule with room, or more shares.
resource "aws_scheduler_schedule" "share" {
  count = var.shards

  name                         = "${var.name}-${count.index + 1}-of-${var.shards}"
  schedule_expression          = var.schedule
  schedule_expression_timezone = "UTC"

  # Shares need not begin at the same moment.
  flexible_time_window {
    mode                      = "FLEXIBLE"
    maximum_window_in_minutes = 5
  }

  target {
    arn      = aws_ecs_cluster.observer.arn
    role_arn = aws_iam_role.schedule.arn

    ecs_parameters {
      task_definition_arn = aws_ecs_task_definition.observer.arn
      launch_type         = "FARGATE"

      network_configuration {
        subnets          = var.subnet_ids
        security_groups  = var.security_group_ids
        assign_public_ip = false
      }
    }

    input = jsonencode({
      containerOverrides = [{
        name    = "observer"
        command = ["observe", "all", "--shard=${count.index + 1}/${var.shards}"]
      }]
    })

    # The next run comes anyway.
    retry_policy {
      maximum_event_age_in_seconds = 900
      maximum_retry_attempts       = 2
    }
  }
}

# Observing on a schedule leaves many small files. This packs them, drops versions that are older than [retention] in
# driftline.toml keeps, and deletes what nobody needs.
resource "aws_scheduler_schedule" "gc" {
  name                         = "${var.name}-gc"
  schedule_expression          = var.gc_schedule
  schedule_expression_timezone = "UTC"

  flexible_time_window {
    mode                      = "FLEXIBLE"
    maximum_window_in_minutes = 15
  }

  target {
    arn      = aws_ecs_cluster.observer.arn
    role_arn = aws_iam_role.schedule.arn

    ecs_parameters {
      task_definition_arn = aws_ecs_task_definition.observer.arn
      launch_type         = "FARGATE"

      network_configuration {
        subnets          = var.subnet_ids
        security_groups  = var.security_group_ids
        assign_public_ip = false
      }
    }

    input = jsonencode({
      containerOverrides = [{
        name    = "observer"
        command = ["gc"]
      }]
    })

    retry_policy {
      maximum_event_age_in_seconds = 900
      maximum_retry_attempts       = 2
    }
  }
}
